package stentor.lab.cxf.soap;

import javax.xml.bind.annotation.XmlAccessType;
import javax.xml.bind.annotation.XmlAccessorType;
import javax.xml.bind.annotation.XmlElement;
import javax.xml.bind.annotation.XmlElements;
import stentor.lab.Content;

/** What is inside the element of an operation: one kind of content. */
@XmlAccessorType(XmlAccessType.FIELD)
public class Holder {
    @XmlElements({
        @XmlElement(name = "payload", type = Beans.Payload.class),
        @XmlElement(name = "numbers", type = Beans.Numbers.class),
        @XmlElement(name = "texts", type = Beans.Texts.class),
        @XmlElement(name = "objects", type = Beans.Objects.class),
        @XmlElement(name = "points", type = Beans.Points.class)
    })
    public Object root;

    public Content content() {
        if (root == null) {
            throw new IllegalArgumentException("no content");
        }
        return ((Beans.Root) root).content();
    }

    public static Holder of(Content content) {
        Holder holder = new Holder();
        holder.root = Beans.of(content);
        return holder;
    }
}
