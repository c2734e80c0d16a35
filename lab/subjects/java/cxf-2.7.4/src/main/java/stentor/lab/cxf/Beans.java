package stentor.lab.cxf;

import java.util.ArrayList;
import java.util.List;
import javax.xml.bind.annotation.XmlAccessType;
import javax.xml.bind.annotation.XmlAccessorType;
import javax.xml.bind.annotation.XmlElement;
import javax.xml.bind.annotation.XmlRootElement;
import javax.xml.bind.annotation.XmlType;
import javax.xml.bind.annotation.XmlValue;
import stentor.lab.Content;

/** What JAXB binds of REST's XML, a class for each kind of content. */
public final class Beans {

    private Beans() {}

    /** A root element. */
    public interface Root {
        Content content();
    }

    @XmlRootElement(name = "payload")
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Payload implements Root {
        @XmlValue
        public String text;

        @Override
        public Content content() {
            return Content.ofPayload(text);
        }
    }

    @XmlRootElement(name = "numbers")
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Numbers implements Root {
        @XmlElement(name = "n")
        public List<Long> entries = new ArrayList<Long>();

        @Override
        public Content content() {
            return Content.ofNumbers(entries);
        }
    }

    @XmlRootElement(name = "texts")
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Texts implements Root {
        @XmlElement(name = "t")
        public List<String> entries = new ArrayList<String>();

        @Override
        public Content content() {
            Content content = Content.of("texts");
            content.texts = entries;
            return content;
        }
    }

    @XmlRootElement(name = "objects")
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Objects implements Root {
        @XmlElement(name = "object")
        public List<Item> entries = new ArrayList<Item>();

        @Override
        public Content content() {
            Content content = Content.of("objects");
            for (Item item : entries) {
                content.objects.add(new Content.Item(item.id, item.name, item.price));
            }
            return content;
        }
    }

    @XmlRootElement(name = "points")
    @XmlAccessorType(XmlAccessType.FIELD)
    public static class Points implements Root {
        @XmlElement(name = "point")
        public List<Point> entries = new ArrayList<Point>();

        @Override
        public Content content() {
            Content content = Content.of("points");
            for (Point point : entries) {
                content.points.add(point.fields());
            }
            return content;
        }
    }

    @XmlAccessorType(XmlAccessType.FIELD)
    @XmlType(name = "Object", propOrder = {"id", "name", "price"})
    public static class Item {
        public long id;
        public String name;
        public double price;

        public static Item of(Content.Item from) {
            Item item = new Item();
            item.id = from.id;
            item.name = from.name;
            item.price = from.price;
            return item;
        }
    }

    @XmlAccessorType(XmlAccessType.FIELD)
    @XmlType(name = "Point", propOrder = {"id", "name", "category", "description", "address", "city", "country",
        "latitude", "longitude", "hours", "phone", "website", "picture"})
    public static class Point {
        public String id;
        public String name;
        public String category;
        public String description;
        public String address;
        public String city;
        public String country;
        public String latitude;
        public String longitude;
        public String hours;
        public String phone;
        public String website;
        public String picture;

        String[] fields() {
            return new String[] {id, name, category, description, address, city, country, latitude, longitude, hours,
                phone, website, picture};
        }

        public static Point of(String[] fields) {
            Point point = new Point();
            point.id = fields[0];
            point.name = fields[1];
            point.category = fields[2];
            point.description = fields[3];
            point.address = fields[4];
            point.city = fields[5];
            point.country = fields[6];
            point.latitude = fields[7];
            point.longitude = fields[8];
            point.hours = fields[9];
            point.phone = fields[10];
            point.website = fields[11];
            point.picture = fields[12];
            return point;
        }
    }

    public static Root of(Content content) {
        if (content.payload != null) {
            Payload payload = new Payload();
            payload.text = content.payload;
            return payload;
        } else if (content.numbers != null) {
            Numbers numbers = new Numbers();
            numbers.entries = content.numbers;
            return numbers;
        } else if (content.texts != null) {
            Texts texts = new Texts();
            texts.entries = content.texts;
            return texts;
        } else if (content.objects != null) {
            Objects objects = new Objects();
            for (Content.Item item : content.objects) {
                objects.entries.add(Item.of(item));
            }
            return objects;
        }
        Points points = new Points();
        for (String[] point : content.points) {
            points.entries.add(Point.of(point));
        }
        return points;
    }
}
